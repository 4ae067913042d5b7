// Follows a node: prints its state, then each event once and in order, one JSON object a line. It goes on where it was
// after a restart of the daemon. After one of its own it does so, too, as the daemon keeps its position under a name; it
// prints no state then.
//
//     npm ci
//     node follow.js NAME
//
// NODEAGENT_SOCKET and NODEAGENT_PROTO say where the socket and the folder of the definitions are.
'use strict';

const { promisify } = require('node:util');
const { setTimeout: pause } = require('node:timers/promises');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const SOCKET = process.env.NODEAGENT_SOCKET || '/run/nodeagent/nodeagent.sock';
const PROTO = process.env.NODEAGENT_PROTO || '/usr/share/nodeagent/proto';
const LONGEST_PAUSE_MS = 10000;

// What trying again cannot mend.
const FINAL = new Set([
  grpc.status.INVALID_ARGUMENT,
  grpc.status.NOT_FOUND,
  grpc.status.PERMISSION_DENIED,
  grpc.status.UNAUTHENTICATED,
  grpc.status.FAILED_PRECONDITION,
  grpc.status.OUT_OF_RANGE,
  grpc.status.UNIMPLEMENTED,
]);

function connect() {
  // Numbers of events have 64 bits, more than a number of JavaScript holds: they are text here.
  const definitions = loader.loadSync('nodeagent/v1/fault_service.proto', {
    includeDirs: [PROTO],
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
    oneofs: true,
  });
  const { FaultService } = grpc.loadPackageDefinition(definitions).nodeagent.v1;
  return new FaultService(`unix:${SOCKET}`, grpc.credentials.createInsecure(), {
    'grpc.max_receive_message_length': 64 << 20,
    // A node that loses its power says nothing: the stream would wait for ever.
    'grpc.keepalive_time_ms': 20000,
    'grpc.keepalive_timeout_ms': 10000,
  });
}

// Your part. Only when it is done is the position told to the daemon: what is shown here may come twice if this program
// is killed in between, and never not at all.
function show(response) {
  if (response.payload === 'snapshot') {
    const devices = response.snapshot.devices.map(({ name, verdict }) => [name, verdict]);
    console.log(JSON.stringify({ snapshot: response.snapshot.seq, devices: Object.fromEntries(devices) }));
  } else if (response.payload === 'batch') {
    for (const { seq, kind, device, code, verdict, handling } of response.batch.events) {
      console.log(JSON.stringify({ seq, kind, device, code, verdict, handling }));
    }
  }
}

// Undefined where a newer daemon says what this program does not know: it moves no position.
function lastOf(response) {
  return response.payload === 'batch' ? response.batch.events.at(-1)?.seq : response[response.payload]?.seq;
}

async function acknowledge(client, request) {
  try {
    await promisify(client.ack.bind(client))(request);
  } catch (error) {
    // The store has begun anew: the stream brings a snapshot of it.
    if (error.code !== grpc.status.FAILED_PRECONDITION) throw error;
  }
}

// One stream, from a position on; `moved` is called with each new one.
async function follow(client, consumer, position, moved) {
  const stream = client.watch({ consumer, snapshot: 'SNAPSHOT_MODE_IF_NEEDED', ...position });
  try {
    for await (const response of stream) {
      show(response);
      const { store_id } = response;
      const seq = lastOf(response);
      if (seq === undefined) continue;
      moved({ store_id, after_seq: seq });
      await acknowledge(client, { consumer, store_id, seq });
    }
  } finally {
    stream.cancel();
  }
}

async function main(consumer) {
  const client = connect();
  let position = {}; // The daemon knows the position of this name, or sends a snapshot.
  let pauseMs = 100;
  for (;;) {
    let failure = 'the daemon ended the stream';
    try {
      await follow(client, consumer, position, (reached) => {
        position = reached;
        pauseMs = 100;
      });
    } catch (error) {
      if (FINAL.has(error.code)) throw error;
      failure = error.details || error;
    }
    // So that a rack of clients does not come back at once.
    const waitMs = Math.round(pauseMs * (0.5 + Math.random() / 2));
    console.error(`nodeagent does not answer, asking again in ${waitMs} ms: ${failure}`);
    await pause(waitMs);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

if (process.argv.length !== 3) {
  console.error('usage: node follow.js NAME');
  process.exit(2);
}
main(process.argv[2]).catch((error) => {
  console.error(`${error.message}`);
  process.exit(1);
});
