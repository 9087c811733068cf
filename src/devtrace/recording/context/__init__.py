"""Around the ops: module calls, hooks, optimizer steps, threads, and errors above the dispatcher."""
