"""What every other folder stands on: errors, files, the environment, progress. It imports nothing else of ours."""
