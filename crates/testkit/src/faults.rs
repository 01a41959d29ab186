//! A raw TCP proxy whose faults are switched while it runs; without one, with several upstreams, it is a load balancer.
//!
//! A connection that has swallowed something stays silent for ever, as one does whose other end has vanished: bytes that are
//! missing in the middle would be a fault that no network has.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Pass,
    /// Connections are reset, new ones at once.
    Cut,
    /// Each piece waits so long.
    Delay(Duration),
    /// What the client sends arrives; what the server answers does not, and neither hears of the other's end.
    HalfOpen,
    /// Connections are taken, and nothing comes out of them at either end.
    BlackHole,
    /// One byte a second, each way.
    Trickle,
    /// A connection is reset after so many more bytes of the client.
    CutAfter(usize),
}

/// Runs on a thread of its own, and ends when it is dropped.
#[derive(Debug)]
pub struct Faults {
    pub address: SocketAddr,
    mode: watch::Sender<Mode>,
    taken: Arc<AtomicUsize>,
}

impl Faults {
    /// Forwards to the first of these that takes a connection, each in its turn.
    pub fn start(upstreams: Vec<SocketAddr>) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (mode, seen) = watch::channel(Mode::Pass);
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(accept(listener, upstreams, seen, counted));
        });
        Self { address, mode, taken }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// How many connections it was asked for so far.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }
}

async fn accept(
    listener: std::net::TcpListener,
    upstreams: Vec<SocketAddr>,
    mut mode: watch::Receiver<Mode>,
    taken: Arc<AtomicUsize>,
) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    let seen = mode.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            changed = mode.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        if let Ok((client, _)) = accepted {
            let turn = taken.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(client, upstreams.clone(), turn, seen.clone()));
        }
    }
}

async fn serve(mut client: TcpStream, upstreams: Vec<SocketAddr>, turn: usize, mode: watch::Receiver<Mode>) {
    let now = *mode.borrow();
    if now == Mode::BlackHole {
        while !matches!(client.read(&mut [0; 4096]).await, Ok(0) | Err(_)) {}
        return;
    }
    let mut upstream = None;
    for n in 0..upstreams.len() {
        if upstream.is_none() && now != Mode::Cut {
            upstream = TcpStream::connect(upstreams[(turn + n) % upstreams.len()]).await.ok();
        }
    }
    let Some(mut server) = upstream else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let silent = AtomicBool::new(false);
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::try_join!(
            Pump { from: from_client, to: to_server, up: true, silent: &silent, mode: mode.clone() }.run(),
            Pump { from: from_server, to: to_client, up: false, silent: &silent, mode }.run(),
        )
    };
    if ended.is_err() {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// One direction of a connection.
struct Pump<'s> {
    from: ReadHalf<'s>,
    to: WriteHalf<'s>,
    /// From the client to the server.
    up: bool,
    /// Something of this connection was swallowed.
    silent: &'s AtomicBool,
    mode: watch::Receiver<Mode>,
}

/// The connection is to be reset, at both ends.
struct Reset;

impl Pump<'_> {
    async fn run(mut self) -> Result<(), Reset> {
        let mut buffer = vec![0; 16 * 1024];
        // What passed since the connection may be cut.
        let mut passed = 0;
        loop {
            let read = tokio::select! {
                read = self.from.read(&mut buffer) => read,
                changed = self.mode.changed() => {
                    passed = 0;
                    if changed.is_err() || *self.mode.borrow() == Mode::Cut {
                        return Err(Reset);
                    }
                    continue;
                }
            };
            let mode = *self.mode.borrow();
            if mode == Mode::BlackHole || (mode == Mode::HalfOpen && !self.up) {
                self.silent.store(true, Ordering::Relaxed);
            }
            let swallows = self.silent.load(Ordering::Relaxed) && (mode != Mode::HalfOpen || !self.up);
            let bytes = match read {
                Ok(0) | Err(_) => {
                    if !self.silent.load(Ordering::Relaxed) && mode != Mode::HalfOpen {
                        let _ = self.to.shutdown().await;
                    }
                    return Ok(());
                }
                Ok(_) if swallows => continue,
                Ok(n) => &buffer[..n],
            };
            match mode {
                Mode::CutAfter(most) if self.up && passed + bytes.len() > most => {
                    let _ = self.to.write_all(&bytes[..most.saturating_sub(passed)]).await;
                    return Err(Reset);
                }
                Mode::Trickle => trickle(&mut self.to, &mut self.mode, bytes).await?,
                Mode::Delay(pause) => {
                    tokio::time::sleep(pause).await;
                    self.to.write_all(bytes).await.map_err(|_| Reset)?;
                }
                _ => self.to.write_all(bytes).await.map_err(|_| Reset)?,
            }
            passed += bytes.len();
        }
    }
}

/// One byte a second, and the rest at once when that is over.
async fn trickle(to: &mut WriteHalf<'_>, mode: &mut watch::Receiver<Mode>, bytes: &[u8]) -> Result<(), Reset> {
    for (at, byte) in bytes.iter().enumerate() {
        if *mode.borrow() != Mode::Trickle {
            return to.write_all(&bytes[at..]).await.map_err(|_| Reset);
        }
        to.write_all(&[*byte]).await.map_err(|_| Reset)?;
        let _ = tokio::time::timeout(Duration::from_secs(1), mode.wait_for(|m| *m != Mode::Trickle)).await;
    }
    Ok(())
}
