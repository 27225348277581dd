"""`python -m codemod`."""

from codemod.cli.app import main

main()
