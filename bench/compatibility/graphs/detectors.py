# SPDX-License-Identifier: Apache-2.0
"""Detectors: heads, anchors, and the suppression of overlapping boxes."""

import numpy as np
import tensorflow as tf

from . import Open, add, f32, op

layers = tf.keras.layers
HEADS = ("float32", "float16", "dynamic", "int8", "int8-io", "int16x8", "aiedge-dynamic8",
         "aiedge-int8")


def postProcess(detections, classes, regular):
    """The custom operator of TensorFlow's detection models."""
    numbers = {"max_detections": f"i: {detections}", "max_classes_per_detection": "i: 1",
               "nms_score_threshold": "f: 0.2", "nms_iou_threshold": "f: 0.5",
               "num_classes": f"i: {classes}", "y_scale": "f: 10.0", "x_scale": "f: 10.0",
               "h_scale": "f: 5.0", "w_scale": "f: 5.0", "detections_per_class": "i: 4",
               "use_regular_nms": f"b: {str(regular).lower()}"}
    words = ['name: "TFLite_Detection_PostProcess"']
    words += [f'attr {{ key: "{key}" value {{ {value} }} }}' for key, value in numbers.items()]

    @tf.function(experimental_implements=" ".join(words))
    def operator(boxes, scores, anchors):
        shape = [1, detections]
        return (tf.zeros([*shape, 4]), tf.zeros(shape), tf.zeros(shape), tf.zeros([1]))
    return operator


def anchors(count):
    generator = np.random.default_rng(3)
    centers = generator.uniform(0.2, 0.8, (count, 2))
    sizes = generator.uniform(0.1, 0.4, (count, 2))
    return tf.constant(np.concatenate([centers, sizes], 1), tf.float32)


def ssd(regular):
    def build():
        features = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu6")
        boxes, classes = (layers.Conv2D(3 * size, 3, padding="same") for size in (4, 4))
        operator = postProcess(6, 3, regular)

        def function(x):
            y = features(x)
            return operator(tf.reshape(boxes(y), [1, -1, 4]),
                            tf.sigmoid(tf.reshape(classes(y), [1, -1, 4])), anchors(3 * 36))
        return function
    return build


def yolo(rank):
    def build():
        conv = layers.Conv2D(3 * 7, 1)
        grid = np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1).reshape(1, 6, 6, 1, 2)
        sizes = np.array([[1, 2], [2, 1], [3, 3]], np.float32).reshape(1, 1, 1, 3, 2)

        def function(x):
            y = tf.reshape(conv(x), [-1, 6, 6, 3, 7])
            centers = (tf.sigmoid(y[..., :2]) + grid.astype(np.float32)) / 6
            extents = tf.exp(y[..., 2:4]) * sizes
            y = tf.concat([centers, extents, tf.sigmoid(y[..., 4:])], -1)
            if rank == 6:
                y = tf.concat([tf.expand_dims(y, -1), tf.expand_dims(-y, -1)], -1)
                return tf.reshape(y, [-1, 108, 7, 2])
            return tf.reshape(y, [-1, 108, 7])
        return function
    return build


def suppressed(kind):
    def function(boxes, scores):
        boxes = tf.concat([boxes, boxes + 0.3], 1)
        limits = dict(max_output_size=tf.constant(6), iou_threshold=tf.constant(0.4),
                      score_threshold=tf.constant(0.1))
        if kind == 4:
            return tf.raw_ops.NonMaxSuppressionV4(boxes=boxes, scores=scores,
                                                  pad_to_max_output_size=True, **limits)
        return tf.raw_ops.NonMaxSuppressionV5(
            boxes=boxes, scores=scores, soft_nms_sigma=tf.constant(0.5),
            pad_to_max_output_size=True, **limits)
    return function


def featurePyramid():
    one, two, last = layers.Conv2D(6, 1), layers.Conv2D(6, 1), layers.Conv2D(4, 3, padding="same")

    def function(fine, coarse):
        up = tf.image.resize(two(coarse), [12, 12], method="nearest")
        y = last(one(fine) + up)
        return tf.concat([tf.reshape(y, [1, -1, 4]), tf.reshape(two(coarse), [1, -1, 6])[..., :4]],
                         1)
    return function


def centers():
    conv = layers.Conv2D(3, 3, padding="same")

    def function(x):
        heat = tf.sigmoid(conv(x))
        peaks = tf.cast(tf.equal(heat, tf.nn.max_pool2d(heat, 3, 1, "SAME")), tf.float32) * heat
        return tf.math.top_k(tf.reshape(peaks, [1, -1]), 5)
    return function


for regular in (False, True):
    add(f"SSD {'regular' if regular else 'fast'} suppression", ssd(regular), f32(1, 12, 12, 3),
        recipes=HEADS, isCustom=True)
for rank in (5, 6):
    add(f"YOLO head of rank {rank}", yolo(rank), f32(1, 6, 6, 8), recipes=HEADS,
        openBatch=("float32", "dynamic", "int8"))
for kind in (4, 5):
    op(f"non-max suppression {kind}", suppressed(kind), f32(30, 2, low=0), f32(30, low=0))
    op(f"non-max suppression {kind} of any number", suppressed(kind), f32(Open(30, 8), 2, low=0),
       f32(Open(30, 8), low=0))
op("combined suppression by hand",
   lambda boxes, scores: tf.gather(boxes, tf.image.non_max_suppression(boxes, scores, 5)),
   f32(20, 4, low=0), f32(20, low=0))
add("feature pyramid", featurePyramid, f32(1, 12, 12, 4), f32(1, 6, 6, 8), recipes=HEADS)
add("CenterNet head", centers, f32(1, 8, 8, 4), recipes=("float32", "dynamic"))
