"""Sharing notes with a team through Milvus: publishing them, and searching what others publish."""
