"""One file per noun: `add(commands)` declares its verbs; `main` lists the files."""
