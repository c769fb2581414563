"""`situate completion`: a script that makes the shell complete commands and options."""

from typing import Final

import click

from situate.cli import main

VARIABLE: Final = "_SITUATE_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes SHELL complete commands and options.

    \b
    bash:  source <(situate completion bash)
    zsh:   source <(situate completion zsh)
    fish:  situate completion fish | source
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"there is no completion for {shell}")
    click.echo(found(main, {}, "situate", VARIABLE).source())
