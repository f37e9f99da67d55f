"""Which chunks does the disk hold? Files are watched, scanned, read and cut here; nothing is stored."""
