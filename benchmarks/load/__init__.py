"""What does memd do under load, and what can badly behaved clients do to the others?"""
