"""The tests: a package, so that a child process finds this one where a release under test installs a `tests` too."""
