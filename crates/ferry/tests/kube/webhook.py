"""A webhook of an API server: python3 webhook.py PORT CERT KEY. /mutate puts a label and an annotation on what it sees;
/convert knows the field of a Greeting as `text` in v1alpha1 and as `words` in v1."""
import base64
import http.server
import json
import ssl
import sys


def mutated(request):
    metadata = request["object"]["metadata"]
    patch = [{"op": "add", "path": "/metadata/" + table, "value": {}} for table in ("labels", "annotations") if table not in metadata]
    patch.append({"op": "add", "path": "/metadata/labels/injected", "value": "yes"})
    patch.append({"op": "add", "path": "/metadata/annotations/seen-by", "value": "the webhook"})
    return {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode()}


def converted(request):
    wanted, objects = request["desiredAPIVersion"], []
    for thing in request["objects"]:
        spec = thing.get("spec", {})
        words = spec.get("text") or spec.get("words")
        thing["spec"] = {"text" if wanted.endswith("v1alpha1") else "words": words}
        objects.append(dict(thing, apiVersion=wanted))
    return {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}


class Webhook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = (mutated if self.path.startswith("/mutate") else converted)(review["request"])
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Webhook)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
