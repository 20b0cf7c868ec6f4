"""The few things of an ONNX file that engines must know, read from its protobuf bytes: no package is needed for it."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a message; values are numbers or views."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            if at + size > len(data):
                raise ValueError("the ONNX file ends inside of a field")
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


def text(view):
    return bytes(view).decode(errors="replace")


class Node:
    """Of the graph: NodeProto's name, op_type, outputs, and the metadata that exporters write."""

    def __init__(self, data):
        self.name, self.op, self.outputs, self.metadata = "", "", [], {}
        for number, value in fields(data):
            if number == 2:
                self.outputs.append(text(value))
            elif number == 3:
                self.name = text(value)
            elif number == 4:
                self.op = text(value)
            elif number == 9:
                entry = dict(fields(value))
                self.metadata[text(entry.get(1, b""))] = text(entry.get(2, b""))


class OnnxFile:
    """The nodes of a file's graph, without those of bodies and functions."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.nodes, self.inputs, self.outputs, weights = [], [], [], set()
        for number, graph in fields(memoryview(self.data)):
            for kind, value in fields(graph) if number == 7 else ():
                if kind == 1:
                    self.nodes.append(Node(value))
                elif kind == 5:
                    weights.add(text(dict(fields(value)).get(8, b"")))
                elif kind == 11:
                    self.inputs.append(text(dict(fields(value)).get(1, b"")))
                elif kind == 12:
                    self.outputs.append(text(dict(fields(value)).get(1, b"")))
        self.inputs = [name for name in self.inputs if name not in weights]

    def value_names(self):
        """What nodes make, in their order; outputs of the model included."""
        return [name for node in self.nodes if node.op != "Constant" for name in node.outputs if name]

    def showing(self, names):
        """The file with further outputs. Two parts of one protobuf message, one behind the other, are the message that has both."""
        added = b"".join(field(12, field(1, name.encode())) for name in names if name not in self.outputs)
        return self.data + field(7, added) if added else self.data


def field(number, data):
    return bytes(to_varint(number << 3 | 2)) + bytes(to_varint(len(data))) + data


def to_varint(value):
    while value > 127:
        yield value & 127 | 128
        value >>= 7
    yield value
