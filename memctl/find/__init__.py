"""The screen of `memctl find`: a live search, and what is drawn of it, in Textual."""
