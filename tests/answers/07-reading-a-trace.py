# %% right
busiest = Counter(op.module.path for op in trace.ops if op.module and op.phase == "forward").most_common(1)[0][0]

# %% right with pandas
ops = trace.to_pandas()["ops"]
busiest = ops[ops["phase"] == "forward"]["module"].mode()[0]

# %% right by hand
paths = [op.module.path for op in trace.ops if op.phase == "forward" and op.module]
busiest = max(set(paths), key=paths.count)

# %% wrong a module around others
busiest = "model"

# %% wrong of another phase
busiest = "model.embed"
