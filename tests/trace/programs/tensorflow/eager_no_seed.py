import tensorflow as tf

weight = tf.Variable(tf.ones([4, 1]))
opt = tf.keras.optimizers.SGD(0.1)
for step in range(3):
    x = tf.random.normal([8, 4])  # diverges: rng
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weight) ** 2)
    opt.apply_gradients([(tape.gradient(loss, weight), weight)])
