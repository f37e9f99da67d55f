"""From the disk to chunks: files are watched, scanned, read and cut here; nothing is stored."""
