import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.rand(32, 8).astype("float32")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, x[:, :1], epochs=2, batch_size=8, verbose=0)
model.evaluate(x, x[:, :1], verbose=0)
