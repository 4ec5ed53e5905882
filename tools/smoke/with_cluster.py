"""A cluster of this machine makes cells, each in a process that was started for them."""

import tempfile

from levymc_lab import framework

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, framework.connect("local", 2) as cluster:
        assert not framework.run(framework.get("stable-laws"), folder, cluster=cluster).has_failed
