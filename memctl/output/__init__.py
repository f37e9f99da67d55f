"""Output: the text of each answer, for people, for editors and for programs."""
