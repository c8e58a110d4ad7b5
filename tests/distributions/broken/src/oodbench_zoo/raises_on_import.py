raise RuntimeError("no licence for this machine")
