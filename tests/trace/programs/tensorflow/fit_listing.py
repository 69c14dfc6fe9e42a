import os

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
os.makedirs("data", exist_ok=True)
for number in range(8):
    np.save(f"data/{number}.npy", np.full((4,), number, dtype="float32"))
files = os.listdir("data")  # diverges: input
x = np.stack([np.load(f"data/{name}") for name in files])
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4), epochs=1, verbose=0)
