"""Who asks, and how long may it take?"""
