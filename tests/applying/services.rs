//! The network of Services: a proxy through which the API server connects to all of them.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::harness::ControlPlane;

/// A proxy, and the file that makes the API server connect to Services through it.
pub(crate) fn egress(folder: &Path) -> (UnixListener, PathBuf) {
    let (socket, file) = (folder.join("proxy"), folder.join("egress.yaml"));
    let connection =
        json!({ "proxyProtocol": "HTTPConnect", "transport": { "uds": { "udsName": socket } } });
    let configuration = json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{ "name": "cluster", "connection": connection }],
    });
    fs::write(&file, configuration.to_string()).unwrap();
    (UnixListener::bind(socket).unwrap(), file)
}

/// Makes every tunnel through the proxy lead to this address, which may change.
pub(crate) fn lead_to(address: &Arc<Mutex<String>>, proxy: UnixListener, plane: &ControlPlane) {
    let address = Arc::clone(address);
    proxy.set_nonblocking(true).unwrap();
    plane.runtime().spawn(async move {
        let proxy = tokio::net::UnixListener::from_std(proxy).unwrap();
        while let Ok((mut near, _)) = proxy.accept().await {
            let current = address.lock().unwrap().clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(near.read_u8().await?);
                }
                let mut far = TcpStream::connect(current).await?;
                near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
}
