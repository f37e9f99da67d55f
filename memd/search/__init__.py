"""Which chunks answer?"""
