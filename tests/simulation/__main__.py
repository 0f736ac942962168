import sys

from tests.simulation.command import main

sys.exit(main())
