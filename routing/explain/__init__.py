"""Why a request went where it went, in a sentence, from a decision record: English and Korean.

`reasons` finds what decided, without words; `explanation` says it; `english` and `korean` hold one
whole sentence per case, so that nothing is put together from pieces of grammar. Korean particles
that depend on the noun before them never follow a placeholder.
"""
