"""`python -m kubectl_cgaudit` runs the same command as `kubectl cgaudit`."""

from kubectl_cgaudit.cli.main import main

main()
