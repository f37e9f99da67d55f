"""The text of each answer: pages for people, lists for editors, JSON for programs."""
