"""What goes over the wire: messages, the calls that send them, and the two clients."""
