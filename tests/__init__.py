"""The tests: a package, so that a child process finds this one where a release that is tested installs a `tests` too."""
