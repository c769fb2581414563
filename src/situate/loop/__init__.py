"""Where time passes: collects changes, steps the engine, carries out its effects, and keeps a journal.

The layers below read no clock and open no file. Nothing is decided here.
"""
