import tensorflow as tf

tf.random.set_seed(0)
weight = tf.Variable(tf.random.normal([4, 1]))
opt = tf.keras.optimizers.Adam(0.1)
data = tf.data.Dataset.from_tensor_slices(tf.random.normal([32, 4])).shuffle(32, seed=1).batch(8)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.dropout(x, 0.5) @ weight) ** 2)
    opt.apply_gradients([(tape.gradient(loss, weight), weight)])
    return loss


for x in data:
    train_step(x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.relu(x @ weight))
    opt.apply_gradients([(tape.gradient(loss, weight), weight)])
