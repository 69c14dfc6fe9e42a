import tensorflow as tf

weight = tf.Variable(tf.ones([4, 1]))
opt = tf.keras.optimizers.SGD(0.1)


@tf.function
def train_step():
    x = tf.random.normal([8, 4])  # diverges: rng
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weight) ** 2)
    opt.apply_gradients([(tape.gradient(loss, weight), weight)])
    return loss


for step in range(3):
    train_step()
