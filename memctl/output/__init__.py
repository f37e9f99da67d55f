"""How an answer reads: for people, for editors, for programs."""
