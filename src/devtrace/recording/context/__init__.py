"""What surrounds an op: module calls, hooks, optimizer steps, threads, and errors above the dispatcher."""
