"""How commands print: tables, colour, plain values and money."""
