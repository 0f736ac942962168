"""One module per controller. Each watches through the client and brings the stored objects to what they should be."""
