"""Fixtures of the tests of embedding."""

from collections.abc import Iterator

import pytest

from memd.embedding.onnx import OnnxEmbedder


@pytest.fixture(scope="session")
def shipped() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder()
    yield embedder
    embedder.close()
