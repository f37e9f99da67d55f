"""The model multilingual-e5-small for memd. NOTICE says where it comes from; build.py makes its files."""
