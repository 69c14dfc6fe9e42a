import tensorflow as tf

tf.random.set_seed(0)
image = tf.Variable(tf.random.normal([1, 64, 64, 8]))
boxes = tf.random.uniform([512, 4])
weight = tf.random.normal([512, 32, 32, 8])
opt = tf.keras.optimizers.SGD(0.1)


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        crops = tf.image.crop_and_resize(image, boxes, tf.zeros([512], tf.int32), [32, 32])  # diverges: op
        loss = tf.reduce_sum(crops * weight)
    opt.apply_gradients([(tape.gradient(loss, image), image)])
    return loss


for step in range(3):
    train_step()
