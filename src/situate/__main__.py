"""`python -m situate`: the same program as the `situate` command."""

from situate.cli import main

if __name__ == "__main__":
    main(prog_name="situate")
