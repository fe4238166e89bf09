import sys

from gapless.command.cli import main

sys.exit(main())
