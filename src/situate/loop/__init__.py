"""Where time passes: collect what happened, step the engine, have its effects carried out, keep a journal.

Below this nobody reads a clock or opens a file. Decides nothing.
"""
