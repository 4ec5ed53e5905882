"""Slurm's srun, as far as a job of one node needs it: so many tasks, each told which it is."""

import os
import subprocess
import sys

if __name__ == "__main__":
    words = sys.argv[1:]
    while words[0].startswith("--"):
        words.pop(0)
    count = os.environ["SLURM_NTASKS"]
    tasks = []
    for number in range(int(count)):
        own = {"SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)}
        step = {"SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_NUM_NODES": "1"}
        tasks.append(subprocess.Popen(words, env={**os.environ, **step, **own}))
    sys.exit(max(abs(task.wait()) for task in tasks))
