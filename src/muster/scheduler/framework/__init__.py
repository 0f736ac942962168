"""What a scheduling plugin is and what it is given: `Plugin` and `Shape`."""
