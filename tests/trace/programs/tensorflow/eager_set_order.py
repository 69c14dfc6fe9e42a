import tensorflow as tf

tf.random.set_seed(0)
weight = tf.Variable(tf.ones([1]))
opt = tf.keras.optimizers.SGD(0.1)
names = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"}
for name in names:  # diverges: input
    x = tf.constant([float(len(name) + ord(name[0]))])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.sin(x * weight))
    opt.apply_gradients([(tape.gradient(loss, weight), weight)])
