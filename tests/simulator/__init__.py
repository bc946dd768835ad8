"""A simulated cluster of any size behind a real HTTP server, the same for the same seed."""

from tests.simulator.cluster import Cluster as Cluster
from tests.simulator.cluster import Size as Size
from tests.simulator.faults import Fault as Fault
from tests.simulator.pages import Store as Store
from tests.simulator.server import Simulator as Simulator
