# %% [markdown]
# # Train a ranking model with DuckDB
#
#     python train.py DIR MODEL
#
# `smartfeed training export --label save=10s --out DIR` wrote the files. This notebook in the percent format opens in Jupyter (with
# jupytext), VS Code and PyCharm, and runs as a script.

# %%
import json
import os
import sys

import duckdb
import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

folder, path = sys.argv[1:3]

# %% [markdown]
# ## Read the files
#
# One row is one shown item. `union_by_name` adds the columns that some files lack, because their visits had no model. A
# feature is null if the model did not receive the item.

# %%
db = duckdb.connect()
db.sql("SET TimeZone = 'UTC'")
db.read_parquet(folder + "/day=*/*.parquet", union_by_name=True, hive_partitioning=True).create_view("items")
print(db.sql("SELECT day, arm, count(*) AS items, avg(label_save::INT) AS save_rate FROM items GROUP BY ALL ORDER BY ALL"))

# %% [markdown]
# ## Read the features in the order in which the model receives them

# %%
names = db.execute(f"SELECT DISTINCT decode(value) FROM parquet_kv_metadata('{folder}/day=*/*.parquet')"
                   " WHERE decode(key) = 'smartfeed.features' AND decode(value) <> '[]'").fetchone()
features = json.loads(names[0])
columns = ", ".join(f'"feature_{name}"' for name in features)
rows = db.execute(f"""
    SELECT {columns}, label_save::INT AS save, 1 / user_share AS weight, hash("user") % 5 = 0 AS test
    FROM items
    WHERE "feature_{features[0]}" IS NOT NULL
""").fetchnumpy()
x = numpy.column_stack([rows[f"feature_{name}"] for name in features])
saved, weight, test = rows["save"], rows["weight"], rows["test"].astype(bool)

# %% [markdown]
# ## Train, and evaluate on other users

# %%
scaler = StandardScaler().fit(x[~test])
model = LogisticRegression().fit(scaler.transform(x[~test]), saved[~test], sample_weight=weight[~test])
auc = roc_auc_score(saved[test], model.predict_proba(scaler.transform(x[test]))[:, 1])
print(f"{len(saved)} items, of which {saved.mean():.1%} were saved; AUC on the users of the test: {auc:.3f}")

# %% [markdown]
# ## Write the model for examples/recommender

# %%
content = {
    "features": features,
    "coefficients": model.coef_[0].tolist(),
    "intercept": float(model.intercept_[0]),
    "means": scaler.mean_.tolist(),
    "scales": scaler.scale_.tolist(),
}
with open(path + ".tmp", "w") as file:
    json.dump(content, file, indent=1)
os.replace(path + ".tmp", path)
