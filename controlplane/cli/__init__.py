"""`consort`: a thin client of the API. No Django, no cluster client; a command is one file."""
