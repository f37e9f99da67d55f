"""MessagePack-RPC over Unix sockets; knows no method."""
