"""MessagePack-RPC over Unix sockets, independent of any method."""
