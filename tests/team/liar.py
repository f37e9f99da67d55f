"""A server of Milvus that lies, each collection in its way: run as a program, which prints its port."""

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from pymilvus.grpc_gen import common_pb2, milvus_pb2, schema_pb2
from pymilvus.grpc_gen.milvus_pb2_grpc import MilvusServiceServicer, add_MilvusServiceServicer_to_server

MANY = 950_000  # parts of two bytes each, just below what memd receives
OK = common_pb2.Status()
FACTS = 'memd team{"schema": 3, "dimensions": 4}'


def scalars(**data):
    return [schema_pb2.FieldData(field_name="key", scalars=schema_pb2.ScalarField(**data))]


FIELDS = {
    "numbers": lambda: scalars(long_data=schema_pb2.LongArray(data=[1] * 2 * MANY)),
    "text": lambda: scalars(string_data=schema_pb2.StringArray(data=["x" * (60 << 20)])),
    "texts": lambda: scalars(string_data=schema_pb2.StringArray(data=[""] * MANY)),
    "arrays": lambda: scalars(array_data=schema_pb2.ArrayArray(data=[schema_pb2.ScalarField()] * MANY)),
    "fields": lambda: [schema_pb2.FieldData()] * MANY,
}
LIES = (*FIELDS, "ids", "topks", "schema")


class Liar(MilvusServiceServicer):
    def Connect(self, _request, _context):  # noqa: N802 - of gRPC
        server = common_pb2.ServerInfo(build_tags="2.5.1")
        return milvus_pb2.ConnectResponse(status=OK, identifier=1, server_info=server)

    def DescribeCollection(self, request, _context):  # noqa: N802 - of gRPC
        fields = [schema_pb2.FieldSchema(name="key", is_primary_key=True, data_type=schema_pb2.Int64)]
        fields += [schema_pb2.FieldSchema()] * (MANY if lie_of(request) == "schema" else 0)
        schema = schema_pb2.CollectionSchema(description=FACTS, fields=fields)
        return milvus_pb2.DescribeCollectionResponse(status=OK, schema=schema, collectionID=1)

    def Query(self, request, _context):  # noqa: N802 - of gRPC
        fields = FIELDS.get(lie_of(request), list)()
        return milvus_pb2.QueryResults(status=OK, fields_data=fields, output_fields=["key"])

    def Search(self, request, _context):  # noqa: N802 - of gRPC
        lie = lie_of(request)
        results = schema_pb2.SearchResultData(
            num_queries=1, top_k=1, fields_data=FIELDS.get(lie, list)(), scores=[1.0],
            topks=[1] * (MANY if lie == "topks" else 1),
        )  # fmt: skip
        results.ids.int_id.data.extend([1] * (2 * MANY if lie == "ids" else 1))
        return milvus_pb2.SearchResults(status=OK, results=results)


def lie_of(request):
    return request.collection_name.split("_")[0]


if __name__ == "__main__":
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
    add_MilvusServiceServicer_to_server(Liar(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
